/** Every HTTP interface starts from this: Elysia, with routes chosen by the path alone. */
import { Elysia } from "elysia";
import { AppError } from "../domain/errors.ts";

type Otherwise = (
  request: Request,
  server: NonNullable<Elysia["server"]>,
) => Response | Promise<Response>;

/**
 * Bun's router chooses every route; requests without one go to `otherwise`. Elysia's own router is
 * never used: it searches the URL for the path from the 12th character on, and so takes the wrong
 * route when the `Host` is shorter than it expects.
 */
export function createApp(otherwise: Otherwise): Elysia {
  return new Elysia({ normalize: false, serve: { routes: { "/*": otherwise } } });
}

/** The path and query of a request's URL, which may have any host or none: Bun copies the `Host` into it. */
export function targetOf({ url }: Request): string {
  if (url.startsWith("/")) return url;
  const path = url.indexOf("/", url.indexOf("//") + 2);
  return url.slice(path);
}

/** Bun normalises a URL before it routes, so a path that only looks like ours may come with any method. */
export function noSuchRoute(
  request: Request,
  /** Path → the methods that it takes, for 405 and its `Allow`. */
  allowedMethods: Readonly<Record<string, readonly string[]>>,
): AppError {
  const [path = ""] = targetOf(request).split("?", 1);
  const methods = Object.hasOwn(allowedMethods, path) ? allowedMethods[path] : undefined;
  if (methods === undefined || methods.includes(request.method)) return new AppError("not_found");
  return new AppError("method_not_allowed", {
    message: `This path does not take this method: use ${methods.join(" or ")}.`,
    allow: methods.join(", "),
  });
}
