/** Keeps the home page up to date. */
keepFresh({ path: () => "/home/live", everyMs: 5_000, take: replaceParts });
