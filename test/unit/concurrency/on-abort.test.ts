import { expect, it, vi } from 'vitest';
import { onAbort } from '../../../src/concurrency/on-abort.ts';

it('onAbort calls every callback of a signal once, and no callback that was removed', () => {
  const controller = new AbortController();
  const callback = vi.fn<(name: string) => void>();
  const twice = () => callback('twice');
  onAbort(controller.signal, twice);
  onAbort(controller.signal, twice);
  const takeBack = onAbort(controller.signal, () => callback('taken back'));
  const other = onAbort(new AbortController().signal, () => callback('other'));
  // Taken back by an earlier callback.
  onAbort(controller.signal, () => takeBackLater());
  const takeBackLater = onAbort(controller.signal, () => callback('taken back later'));
  takeBack();
  controller.abort();
  expect(callback.mock.calls).toEqual([['twice'], ['twice']]);
  takeBack();
  other();
});

it('onAbort adds one listener for any number of callbacks', () => {
  const { signal } = new AbortController();
  const listen = vi.spyOn(signal, 'addEventListener');
  for (let n = 0; n < 1000; n += 1) onAbort(signal, () => {});
  expect(listen).toHaveBeenCalledTimes(1);
});
