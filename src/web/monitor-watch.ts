import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { MonitorState } from './content.ts';

/** The newest writes, reloads and lost runs of the monitor. */
export class MonitorWatch {
  readonly #clock: Clock;
  #state: MonitorState;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#state = {
      startedAt: clock.now(),
      lastCommitAt: undefined,
      lastCommitFailure: undefined,
      lastReload: undefined,
      missedRuns: 0,
      skippedRuns: 0,
      lastLostRunAt: undefined,
      // Those of the daemon are its own.
      receivers: [],
    };
  }

  readonly observe: Observer = (event) => {
    const at = this.#clock.now();
    const { missedRuns, skippedRuns } = this.#state;
    if (event.type === 'store.committed') {
      this.#set({ lastCommitAt: at });
    } else if (event.type === 'store.commit_failed') {
      this.#set({ lastCommitFailure: { at, reason: event.reason } });
    } else if (event.type === 'scheduler.missed') {
      this.#set({ missedRuns: missedRuns + event.count, lastLostRunAt: at });
    } else if (event.type === 'scheduler.overlapped') {
      this.#set({ skippedRuns: skippedRuns + 1, lastLostRunAt: at });
    } else if (event.type === 'config.reloaded') {
      this.#set({ lastReload: { at, ok: true, reasons: [] } });
    } else if (event.type === 'config.reload_failed') {
      this.#set({ lastReload: { at, ok: false, reasons: event.reasons } });
    }
  };

  state(): MonitorState {
    return this.#state;
  }

  #set(change: Partial<MonitorState>): void {
    this.#state = { ...this.#state, ...change };
  }
}
