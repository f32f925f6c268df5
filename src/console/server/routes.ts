/** Defines routes for pages, forms and scripts, and answers refused requests. */
import type { VNode } from "preact";
import { NotFoundError, UserError } from "../../lib/errors.ts";
import type { Awaitable } from "../../domain/storage/awaitable.ts";
import { describeLimit, isRateLimited, notFoundPage, retryAfterOf } from "./problems.tsx";
import { json, page } from "./responses.ts";
import type { ConsoleServices } from "./services.ts";
import type { MemberVisit, Visit } from "./visit.ts";

/**
 * `member`: redirects to the sign-in page without a session, and to `/passkey` while the member must add
 * one. `signed-in`: allows that member, too. `manager`: refuses viewers.
 */
type Access = "public" | "signed-in" | "member" | "manager";

export interface Route<V extends Visit = MemberVisit> {
  readonly method: "GET" | "POST";
  /** Elysia's syntax: `/keys/:id`. */
  readonly path: string;
  readonly access: Access;
  /** The path of the page with the form, if it is another. */
  readonly formPage?: string | undefined;
  readonly handle: (services: ConsoleServices, visit: V) => Promise<Response>;
}

/** A page to render, or a finished response. */
export type Answer = VNode | Response;

/** `problem`: why the page's form was refused; null: it was not sent. */
export type Show<V = MemberVisit> = (
  services: ConsoleServices,
  visit: V,
  problem: string | null,
) => Awaitable<Answer>;

/** Answers a form. Throws a `UserError` for what a person can correct. */
export type Send<V = MemberVisit> = (services: ConsoleServices, visit: V) => Awaitable<Answer>;

/** Returns the options for a passkey. */
export type Options<V = MemberVisit> = (services: ConsoleServices, visit: V) => Promise<object>;

interface Form<V> {
  /** Shows the form again, with what a person can correct. */
  readonly again?: Show<V>;
  /** The path of the page with the form, if it is another. */
  readonly page?: string;
}

function routesFor<V extends Visit>(access: Access) {
  return {
    page: (path: string, show: Show<V>): Route<V> => ({
      method: "GET",
      path,
      access,
      handle: (services, visit) => respond(visit, () => show(services, visit, null)),
    }),

    form: (path: string, send: Send<V>, { again, page: formPage }: Form<V>): Route<V> => ({
      method: "POST",
      path,
      access,
      formPage,
      handle: async (services, visit) => {
        try {
          return await respond(visit, () => send(services, visit));
        } catch (error) {
          if (again === undefined) throw error;
          if (error instanceof UserError) {
            return respond(visit, () => again(services, visit, error.sentence), 422);
          }
          // Passwords are limited; passkeys on the same page are not.
          if (access !== "public" || !isRateLimited(error)) throw error;
          const response = await respond(
            visit,
            () => again(services, visit, describeLimit(error)),
            429,
          );
          response.headers.set("Retry-After", retryAfterOf(error));
          return response;
        }
      },
    }),

    /** Answers a script of our pages with the options for a passkey, or with the problem. */
    passkey: (path: string, read: Options<V>, formPage?: string): Route<V> => ({
      method: "POST",
      path,
      access,
      formPage,
      handle: async (services, visit) => {
        try {
          return json({ options: await read(services, visit) });
        } catch (error) {
          if (error instanceof UserError) return json({ problem: error.sentence }, 422);
          if (isRateLimited(error)) return json({ problem: describeLimit(error) }, 429);
          throw error;
        }
      },
    }),
  };
}

export const forEverybody = routesFor<Visit>("public");
/** Also a member who must add a passkey first. */
export const forSignedIn = routesFor<MemberVisit>("signed-in");
/** Forms that change the member's own account, and nothing else of the desk. */
export const forAccount = routesFor<MemberVisit>("member");
/** Without forms: each is for an account or for managers, so that none can forget who may send it. */
export const forMembers = { page: forAccount.page };
/** Whatever changes the desk, with the pages that lead to it. */
export const forManagers = routesFor<MemberVisit>("manager");

/** Throws for what does not exist, or belongs to another desk: nobody learns that it exists. */
export function found<T>(what: T | null | undefined): T {
  if (what === null || what === undefined) throw new NotFoundError("It does not exist.");
  return what;
}

/** A page or form of one thing of the desk, such as a key. */
export type HandleOne<Thing> = (
  services: ConsoleServices,
  visit: MemberVisit,
  thing: Thing,
  problem: string | null,
) => Awaitable<Answer>;

/** For what the path's `:id` names. `find` does not find another desk's. */
export function ofOne<Thing>(
  find: (
    services: ConsoleServices,
    visit: MemberVisit,
    id: string,
  ) => Awaitable<Thing | null | undefined>,
) {
  return (handle: HandleOne<Thing>) =>
    async (
      services: ConsoleServices,
      visit: MemberVisit,
      problem: string | null = null,
    ): Promise<Answer> => {
      const thing = found(await find(services, visit, visit.params["id"] ?? ""));
      return handle(services, visit, thing, problem);
    };
}

async function respond(
  visit: Visit,
  work: () => Awaitable<Answer>,
  status = 200,
): Promise<Response> {
  try {
    const answer = await work();
    return answer instanceof Response ? answer : page(answer, visit, status);
  } catch (error) {
    if (error instanceof NotFoundError) return notFoundPage();
    throw error;
  }
}
