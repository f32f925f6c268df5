/** The errors that are answers: cheap to make, and errors to whoever catches one. */
import { expect, test } from "bun:test";
import { AppError, errorCatalogue, messageOf } from "../src/domain/errors.ts";

test("an answer is an error without a stack trace", () => {
  const error: unknown = new AppError("bad_request", { message: "No." });
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ code: "bad_request", detail: { message: "No." } });
  expect([messageOf(error), String(error)]).toEqual(["No.", "AppError: No."]);
  expect((error as Error).stack).toBeUndefined();
});

test("an answer's message is the catalogue's where it has none of its own", () => {
  expect(messageOf(new AppError("unauthorized"))).toBe(errorCatalogue.unauthorized.message);
  expect(messageOf(new AppError("validation_failed"))).toBe("validation_failed");
});
