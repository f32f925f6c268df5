#!/usr/bin/env bun
import { run } from "./cli/run.ts";
import { createProgram } from "./commands/program.ts";

// Exit explicitly: a log line that cannot be written would keep the process alive.
process.exit(await run(createProgram, process.argv.slice(2)));
