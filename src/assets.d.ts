declare module "*.sql" {
  const text: string;
  export default text;
}

declare module "*.sh" {
  const text: string;
  export default text;
}

declare module "*.py" {
  const text: string;
  export default text;
}

declare module "*.css" {
  const text: string;
  export default text;
}

declare module "*.svg" {
  const text: string;
  export default text;
}

declare module "*/assets/console.js" {
  const text: string;
  export default text;
}

declare module "*/assets/local-times.js" {
  const text: string;
  export default text;
}

declare module "*/assets/passkeys.js" {
  const text: string;
  export default text;
}

declare module "*/index.umd.min.js" {
  const text: string;
  export default text;
}

declare module "*/assets/shortcuts.js" {
  const text: string;
  export default text;
}

declare module "*/assets/signals.js" {
  const text: string;
  export default text;
}

declare module "*/assets/start.js" {
  const text: string;
  export default text;
}

declare module "*/assets/activity.js" {
  const text: string;
  export default text;
}

declare module "*/assets/home.js" {
  const text: string;
  export default text;
}

declare module "*/assets/live.js" {
  const text: string;
  export default text;
}

declare module "*/uPlot.iife.min.js" {
  const text: string;
  export default text;
}

declare module "lucide/dist/esm/icons/*.mjs" {
  const node: import("lucide").IconNode;
  export default node;
}

declare module "prom-client/lib/counter.js" {
  export { Counter as default } from "prom-client";
}

declare module "prom-client/lib/gauge.js" {
  export { Gauge as default } from "prom-client";
}

declare module "prom-client/lib/registry.js" {
  export { Registry as default } from "prom-client";
}
