/** The parts of prom-client that are used. The whole package loads OpenTelemetry, which delays a start. */
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Registry from "prom-client/lib/registry.js";

export { Counter, Gauge, Registry };
