/** The client of the open loop. Usage: bun bench/open-client.ts LOAD, which is an OpenLoad in JSON. */
import { type OpenLoad, OpenSchedule } from "./open-schedule.ts";

const load = JSON.parse(process.argv[2] ?? "{}") as OpenLoad;
const schedule = await OpenSchedule.connect(load);
const result = await schedule.run();
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
