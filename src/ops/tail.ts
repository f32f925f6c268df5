/** The end of what a program writes. */
import { stripVTControlCharacters } from "node:util";

const LINES_MAX = 5;
const CHARACTERS_MAX = 1_000;

/** The last lines of a stream of any length. */
export class Tail {
  /** Never rejects: if the stream fails, the text ends there. */
  readonly ended: Promise<void>;
  #text = "";

  constructor(stream: ReadableStream<Uint8Array>) {
    this.ended = this.#read(stream).catch(() => {});
  }

  get text(): string {
    const lines = stripVTControlCharacters(this.#text).split(/[\r\n]+/);
    return lines
      .filter((line) => line.trim() !== "")
      .slice(-LINES_MAX)
      .join(" / ");
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.#text = (this.#text + decoder.decode(chunk, { stream: true })).slice(-CHARACTERS_MAX);
    }
  }
}
