#!/usr/bin/env bun
import { run } from "./cli.ts";

// At once: a line of the log that cannot be written would keep the process alive.
process.exit(await run(process.argv.slice(2)));
