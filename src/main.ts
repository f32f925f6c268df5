#!/usr/bin/env bun
import { run } from "./cli.ts";

// Exit explicitly: a log line that cannot be written would keep the process alive.
process.exit(await run(process.argv.slice(2)));
