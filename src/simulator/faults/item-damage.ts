import type { ItemStatus } from '../world/listings.ts';

type Item = Readonly<Record<string, unknown>>;

/** Functions that replace the first item of a listing by damaged items. */
const damages = {
  'no-id': (item: Item) => [without(item, 'id')],
  'numeric-id': (item: Item) => [{ ...item, id: 42 }],
  'empty-id': (item: Item) => [{ ...item, id: '' }],
  'long-id': (item: Item) => [{ ...item, id: 'x'.repeat(513) }],
  'surrogate-id': (item: Item) => [{ ...item, id: 'half \ud83d' }],
  'no-status': (item: Item) => [without(item, 'status')],
  'null-status': (item: Item) => [{ ...item, status: null }],
  'numeric-status': (item: Item) => [{ ...item, status: 3 }],
  'unknown-status': (item: Item) => [{ ...item, status: 'PAUSED' }],
  /** The same id twice, with the true status last. */
  duplicate: (item: Item) => [
    { ...item, status: item['status'] === 'RUNNING' ? 'FAILED' : 'RUNNING' },
    item,
  ],
  'prototype-keys': (item: Item) => [
    Object.defineProperty({ ...item, constructor: 1, toString: null }, '__proto__', {
      value: { id: 'polluted', status: 'FAILED' },
      enumerable: true,
    }),
  ],
  'odd-fields': (item: Item) => [{ ...item, name: 7, timestamp: null, owner: { team: ['x'] } }],
  'not-an-object': () => ['prompt', null],
};

/** `none-usable` damages every item, the others the first. */
export type ItemDamage = keyof typeof damages | 'none-usable';

export const ITEM_DAMAGES: readonly string[] = [...Object.keys(damages), 'none-usable'];

export function isItemDamage(text: string): text is ItemDamage {
  return ITEM_DAMAGES.includes(text);
}

/** Damages a listing. A listing without items is returned unchanged. */
export function damageItems(items: readonly unknown[], variant: ItemDamage): readonly unknown[] {
  if (variant === 'none-usable') return items.map(() => ({ status: 'RUNNING' }));
  const [first, ...others] = items;
  return isObject(first) ? [...damages[variant](first), ...others] : items;
}

/** Returns the id and status of each item, unchecked. */
export function statusesOf(items: readonly unknown[]): readonly ItemStatus[] {
  return items.map((item) =>
    isObject(item) ? [item['id'] ?? null, item['status'] ?? null] : [null, null],
  );
}

function without(item: Item, field: string): Item {
  return Object.fromEntries(Object.entries(item).filter(([name]) => name !== field));
}

function isObject(value: unknown): value is Item {
  return typeof value === 'object' && value !== null;
}
