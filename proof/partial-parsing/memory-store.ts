import type { KnownListing } from '../../src/domain/record.ts';
import type { Kind } from '../../src/domain/status.ts';
import type * as ErrorsRoom from '../../src/monitor/errors.ts';
import type { PollCommit, Store } from '../../src/monitor/ports/store.ts';

/** Creates a store in memory with the methods that a poll needs. */
export function memoryStore({ StoreError }: typeof ErrorsRoom) {
  const listings = new Map<Kind, KnownListing>();
  let version = 0;
  let transitionId = 0;
  let isBroken = false;
  let last: PollCommit | undefined;

  const store: Pick<Store, 'loadKnown' | 'commitPoll' | 'keepHealth' | 'isFinishing'> = {
    keepHealth: () => {},
    isFinishing: () => false,
    loadKnown: async (_project, kinds, only) => ({
      token: String(version),
      listings: new Map(
        kinds.map((kind) => {
          const { baselined, records } = listings.get(kind) ?? {
            baselined: false,
            records: new Map(),
          };
          const ids = only?.get(kind);
          const asked = [...records].filter(([id]) => ids === undefined || ids.includes(id));
          return [kind, { baselined, records: new Map(asked) }];
        }),
      ),
    }),
    commitPoll: async (commit) => {
      last = undefined;
      if (isBroken) throw new StoreError('full', 'the disk is full');
      last = commit;
      version += commit.listings.size > 0 ? 1 : 0;
      const transitions = [...commit.listings].flatMap(([kind, changes]) => {
        const records = new Map(listings.get(kind)?.records);
        for (const record of changes.records) records.set(record.id, record);
        const sorted = [...records].toSorted(([one], [other]) => (one < other ? -1 : 1));
        listings.set(kind, { baselined: true, records: new Map(sorted) });
        return changes.transitions.map((transition) => {
          transitionId += 1;
          return { ...transition, transitionId, kind };
        });
      });
      return { transitions, finishes: [] };
    },
  };
  return {
    ...store,
    breaks: (broken: boolean) => {
      isBroken = broken;
    },
    committed: () => last,
  };
}
