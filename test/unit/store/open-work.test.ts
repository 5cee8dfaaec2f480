import { expect, it } from 'vitest';
import { StoreError } from '../../../src/monitor/errors.ts';
import { createOpenWork } from '../../../src/store/open-work.ts';

it.each([0, 1, 2, 3, 4, 5, 6])(
  'close waits for or rejects work that starts %d microtasks after the last one ended',
  async (turns) => {
    const openWork = createOpenWork();
    const last = Promise.withResolvers<void>();
    const late = Promise.withResolvers<void>();
    let isUnderWay = false;
    const running = openWork.run(() => last.promise);
    const begin = async () => {
      await running;
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      await openWork.run(async () => {
        isUnderWay = true;
        setImmediate(() => late.resolve());
        await late.promise;
        isUnderWay = false;
      });
    };
    const begun = begin().catch((error: unknown) => {
      if (!(error instanceof StoreError)) throw error;
    });

    const closed = openWork.close().then(() => isUnderWay);
    last.resolve();

    expect(await closed).toBe(false);
    await begun;
    expect(isUnderWay).toBe(false);
    await expect(openWork.run(() => Promise.resolve())).rejects.toThrow('the store is closed');
  },
);
