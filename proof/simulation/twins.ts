import type { IncomingMessage } from 'node:http';
import { type Answer, emptyAnswer } from '../../src/simulator/answer.ts';
import type { FaultFreeAnswer } from '../../src/simulator/service.ts';

/** Addresses of two services that have the same prompts. */
export const ADDRESSES = ['http://service.test', 'http://twin.test'] as const;

const HOSTS = ADDRESSES.map((address) => new URL(address).host);

/** A listing as a service served it last. */
interface Served {
  readonly body: Answer['body'];
  readonly number: number;
  /** Whether it has an item without an id after the others. */
  readonly isOdd: boolean;
}

const ODD_ITEM = ',{}]';
/** The same for the oracle. */
const NO_ID = [null, null] as const;

/**
 * Creates two services with the same listings. Each has its own numbers as ETags: a number of one mostly names another
 * listing at the other.
 * @param answer answers of a service without ETags
 * @param isOdd whether a changed listing has an undocumented item
 */
export function createTwins(
  answer: (request: IncomingMessage) => FaultFreeAnswer,
  isOdd: () => boolean,
): (request: IncomingMessage) => FaultFreeAnswer {
  const served = new Map<string, Served>();

  /** Gives a changed listing the next number, or a higher one that the other service gave to another listing. */
  function serve(host: string, listing: string, body: Answer['body']): Served {
    const own = served.get(`${host} ${listing}`);
    if (own?.body === body) return own;
    const others = HOSTS.filter((one) => one !== host)
      .flatMap((one) => served.get(`${one} ${listing}`) ?? [])
      .filter((other) => other.body !== body)
      .map((other) => other.number);
    const number = Math.max((own?.number ?? 0) + 1, ...others);
    const next = { body, number, isOdd: isOdd() };
    served.set(`${host} ${listing}`, next);
    return next;
  }

  return (request) => {
    const found = answer(request);
    const { body, headers, listing, status } = found.answer;
    if (listing?.items === undefined || status !== 200) return found;
    const { host = '' } = request.headers;
    const own = serve(host, `${listing.kind} ${listing.project}`, body);
    const etag = `"${own.number}"`;
    const isAdded = own.isOdd && listing.items.length > 0;
    const told = isAdded ? { ...listing, items: [...listing.items, NO_ID] } : listing;
    if (request.headers['if-none-match'] === etag) {
      return { ...found, answer: { ...emptyAnswer(304, { etag }), listing: told } };
    }
    const sent = isAdded ? withOddItem(body) : body;
    const tagged = { ...found.answer, body: sent, headers: { ...headers, etag }, listing: told };
    return { ...found, answer: tagged };
  };
}

function withOddItem(body: Answer['body']): Answer['body'] {
  return Buffer.isBuffer(body)
    ? Buffer.concat([body.subarray(0, -1), Buffer.from(ODD_ITEM)])
    : body;
}
