/** The roles of members in words, and the choice between them. */
import { type MemberRole, memberRoles } from "../../../domain/member/member.ts";
import { UserError } from "../../../lib/errors.ts";
import type { FieldProps } from "../../ui/forms.tsx";

export const roleNames: Readonly<Record<MemberRole, string>> = {
  manager: "Manager",
  viewer: "Viewer",
};

export function roleField(value: MemberRole): FieldProps {
  return {
    id: "role",
    label: "Role",
    hint: "A manager can change the desk's keys and members. A viewer sees everything of the desk, and changes only their own account.",
    options: memberRoles.map((role) => ({ value: role, name: roleNames[role] })),
    value,
  };
}

/** Throws a `UserError` for a role that the form did not offer. */
export function readRole(form: URLSearchParams): MemberRole {
  const role = memberRoles.find((one) => one === form.get("role"));
  if (role === undefined) throw new UserError("Choose the member's role. Nothing was changed.");
  return role;
}
