import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { MonitorState, ReloadResult } from '../web/content.ts';

export interface MonitorWatch {
  readonly observe: Observer;
  /** Records an attempt to reload the configuration. */
  reloaded(result: ReloadResult): void;
  state(): MonitorState;
}

/** Collects the newest writes, reloads and lost runs of the monitor. */
export function watchMonitor(clock: Clock): MonitorWatch {
  let state: MonitorState = {
    startedAt: clock.now(),
    lastCommitAt: undefined,
    lastCommitFailure: undefined,
    lastReload: undefined,
    missedRuns: 0,
    skippedRuns: 0,
    lastLostRunAt: undefined,
  };
  return {
    observe: (event) => {
      const at = clock.now();
      if (event.type === 'store.committed') {
        state = { ...state, lastCommitAt: at };
      } else if (event.type === 'store.commit_failed') {
        state = { ...state, lastCommitFailure: { at, reason: event.reason } };
      } else if (event.type === 'scheduler.missed') {
        state = { ...state, missedRuns: state.missedRuns + event.count, lastLostRunAt: at };
      } else if (event.type === 'scheduler.overlapped') {
        state = { ...state, skippedRuns: state.skippedRuns + 1, lastLostRunAt: at };
      }
    },
    reloaded: ({ ok, reasons }) => {
      state = { ...state, lastReload: { at: clock.now(), ok, reasons } };
    },
    state: () => state,
  };
}
