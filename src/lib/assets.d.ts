/** Files that are imported as text; `*.js` is what browsers get. */
declare module "*.sql" {
  const text: string;
  export default text;
}

declare module "*.bash" {
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

declare module "*.js" {
  const text: string;
  export default text;
}

declare module "lucide/dist/esm/icons/*.mjs" {
  const node: import("lucide").IconNode;
  export default node;
}
