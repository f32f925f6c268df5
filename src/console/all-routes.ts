/** All routes of the console. */
import { accountRoutes } from "./account/routes.tsx";
import { activityRoutes } from "./activity/routes.tsx";
import { auditRoutes } from "./audit/routes.tsx";
import { keyRoutes } from "./keys/routes.tsx";
import { memberRoutes } from "./members/routes.tsx";
import { joinRoutes } from "./sign-in/join-routes.tsx";
import { signInRoutes } from "./sign-in/routes.tsx";
import { signalRoutes } from "./signals/routes.tsx";
import { homeRoutes } from "./home/routes.tsx";
import { startRoutes } from "./start/routes.tsx";
import type { Route } from "./web/routes.ts";

export const allRoutes: readonly Route[] = [
  ...signInRoutes,
  ...joinRoutes,
  ...homeRoutes,
  ...startRoutes,
  ...signalRoutes,
  ...activityRoutes,
  ...keyRoutes,
  ...memberRoutes,
  ...auditRoutes,
  ...accountRoutes,
];
