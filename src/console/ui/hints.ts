/** What forms and lists say about limits. */
import {
  activityWidths,
  REPEATS_KEPT,
  REQUESTS_PER_REASON_KEPT,
} from "../../domain/activity/activity.ts";
import { NOTE_CHARACTERS_MAX } from "../../domain/desk/note.ts";
import { PASSWORD_CHARACTERS_MIN } from "../../domain/member/password.ts";
import { SESSION_AGE_MS_MAX, SESSION_IDLE_MS_MAX } from "../server/sessions/sessions.ts";
import { DAY_MS, HOUR_MS } from "../../lib/text/time.ts";

export const newPasswordHint = `At least ${PASSWORD_CHARACTERS_MIN} characters, such as four or five random words.`;

export const sessionsHint = `A session ends after ${SESSION_IDLE_MS_MAX / HOUR_MS} hours without use, and after ${SESSION_AGE_MS_MAX / DAY_MS} days.`;

export const keyLabelHint = `What it is for, such as the bot or its environment: up to ${NOTE_CHARACTERS_MAX} characters.`;

export const rejectsHint = `Requests of the last ${activityWidths.day.kept} days are counted, and the latest ${REQUESTS_PER_REASON_KEPT} per reason and key are kept. Not shown: requests without a key or with an unknown one, and requests to a wrong path or with a wrong method. If a bot gets 401 and is not in this list, its key is not one of your desk's keys for sending.`;

export const duplicatesHint = `Counted for your desk's latest ${REPEATS_KEPT.toLocaleString("en")} signals with duplicates; the last few seconds are not included yet.`;
