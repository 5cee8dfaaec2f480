import type { SecretSource } from './options.ts';

export const RECEIVER_TYPES = ['webhook', 'slack', 'teams', 'email'] as const;
export const NOTIFY_KINDS = ['failed', 'completed', 'finished', 'stuck', 'down'] as const;
/** What a receiver is told. */
export type NotifyKind = (typeof NOTIFY_KINDS)[number];

interface Told {
  /** Unique. */
  readonly name: string;
  readonly on: readonly NotifyKind[];
  /** Undefined, like `projects`, if no team is named. If both are, all projects are told. */
  readonly teams: ReadonlySet<string> | undefined;
  readonly projects: ReadonlySet<string> | undefined;
}

export interface HttpReceiver extends Told {
  readonly type: 'webhook' | 'slack' | 'teams';
  readonly url: SecretSource | { readonly url: string };
  /** Only of a webhook: undefined to sign no message. */
  readonly secret?: SecretSource | undefined;
}
export interface EmailReceiver extends Told {
  readonly type: 'email';
  readonly smtpUrl: SecretSource;
  readonly from: string;
  readonly to: readonly string[];
}

/** A receiver of messages, and what it is told of. Addresses and secrets are read at each attempt. */
export type Receiver = HttpReceiver | EmailReceiver;

/** Whether a receiver is told of a project: of its team or of itself. */
export function isFor(
  { teams, projects }: Pick<Receiver, 'teams' | 'projects'>,
  { id, team }: { readonly id: string; readonly team: string },
): boolean {
  if (teams === undefined && projects === undefined) return true;
  return teams?.has(team) === true || projects?.has(id) === true;
}
