/** All routes of the console. */
import { accountRoutes } from "../pages/account/routes.tsx";
import { differingSignalRoutes } from "../pages/activity/differing-signal.tsx";
import { differingRoutes } from "../pages/activity/differing.tsx";
import { activityRoutes } from "../pages/activity/page.tsx";
import { sentRoutes } from "../pages/activity/sent.tsx";
import { auditRoutes } from "../pages/audit/page.tsx";
import { keyRoutes } from "../pages/keys/routes.tsx";
import { memberRoutes } from "../pages/members/routes.tsx";
import { noticeRoutes } from "../pages/notices/routes.tsx";
import { joinRoutes } from "../pages/sign-in/join.tsx";
import { signInRoutes } from "../pages/sign-in/sign-in.tsx";
import { signalRoutes } from "../pages/signals/routes.tsx";
import { homeRoutes } from "../pages/home/page.tsx";
import { startRoutes } from "../pages/start/page.tsx";
import type { Route } from "./routes.ts";

export const allRoutes: readonly Route[] = [
  ...signInRoutes,
  ...joinRoutes,
  ...homeRoutes,
  ...startRoutes,
  ...signalRoutes,
  ...activityRoutes,
  ...differingRoutes,
  ...differingSignalRoutes,
  ...sentRoutes,
  ...keyRoutes,
  ...memberRoutes,
  ...noticeRoutes,
  ...auditRoutes,
  ...accountRoutes,
];
