/** Small pictures, for the README. */

/** Writes a picture, or that of a file, with 256 colours: a third of the size. */
export async function writePicture(path: string, picture: string | Uint8Array): Promise<void> {
  await new Bun.Image(picture).png({ palette: true, compressionLevel: 9 }).write(path);
}
