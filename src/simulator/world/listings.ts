import { createHash } from 'node:crypto';
import { type Dataset, type Kind, type Prompt, promptListItem } from './records.ts';
import type { World } from './world.ts';

/** Id and status of an item in the JSON of a listing; null for an absent field. */
export type ItemStatus = readonly [id: unknown, status: unknown];

/** A listing, ready to be sent. */
export interface RenderedListing {
  readonly body: Buffer;
  /** Returns the ETag of the body, without quotes. */
  readonly etag: () => string;
  readonly items: readonly ItemStatus[];
}

interface Fragment {
  readonly json: string;
  readonly item: ItemStatus;
}

/**
 * Renders listings and keeps each one until one of its records changes. Records are immutable, so the JSON of each record
 * is kept as well: after a few moves, a listing of a hundred thousand prompts is only joined again.
 */
export function createListings(
  world: World,
): (project: string, kind: Kind) => RenderedListing | undefined {
  const fragments = new WeakMap<Prompt | Dataset, Fragment>();
  const rendered = new Map<
    string,
    { readonly version: number; readonly listing: RenderedListing }
  >();

  function fragmentOf(record: Prompt | Dataset): Fragment {
    const known = fragments.get(record);
    if (known !== undefined) return known;
    const json = JSON.stringify('llm' in record ? promptListItem(record) : record);
    const fragment: Fragment = { json, item: [record.id, record.status ?? null] };
    fragments.set(record, fragment);
    return fragment;
  }

  function render(records: Iterable<Prompt | Dataset>): RenderedListing {
    const parts = Array.from(records, fragmentOf);
    const body = Buffer.from(`[${parts.map((part) => part.json).join(',')}]`);
    let etag: string | undefined;
    return {
      body,
      etag: () => (etag ??= createHash('sha1').update(body).digest('base64url')),
      items: parts.map((part) => part.item),
    };
  }

  return (project, kind) => {
    const records = kind === 'prompt' ? world.prompts(project) : world.datasets(project);
    if (records === undefined) return undefined;
    const key = `${kind} ${project}`;
    const version = world.version(project, kind);
    const last = rendered.get(key);
    if (last?.version === version) return last.listing;
    const listing = render(records.values());
    rendered.set(key, { version, listing });
    return listing;
  };
}
