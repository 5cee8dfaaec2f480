import type { IncomingMessage } from 'node:http';
import { type Answer, emptyAnswer } from '../../src/simulator/answer.ts';
import type { FaultFreeAnswer } from '../../src/simulator/service.ts';

/** Addresses of two services that have the same prompts. */
export const ADDRESSES = ['http://service.test', 'http://twin.test'] as const;

/** A listing as a service served it last. */
interface Served {
  readonly body: Answer['body'];
  readonly number: number;
}

/**
 * Two services with the same listings, whose ETags are numbers of their own: a number of one mostly names another listing at
 * the other. Takes the answers of a service without ETags.
 */
export function createTwins(
  answer: (request: IncomingMessage) => FaultFreeAnswer,
): (request: IncomingMessage) => FaultFreeAnswer {
  const served = new Map<string, Served>();

  /** Gives a changed listing the number that the other service gave to another one, if it is a higher one. */
  function numberOf(host: string, listing: string, body: Answer['body']): number {
    const own = served.get(`${host} ${listing}`);
    if (own?.body === body) return own.number;
    const others = ADDRESSES.map((address) => new URL(address).host)
      .filter((one) => one !== host)
      .flatMap((one) => served.get(`${one} ${listing}`) ?? [])
      .filter((other) => other.body !== body)
      .map((other) => other.number);
    const number = Math.max((own?.number ?? 0) + 1, ...others);
    served.set(`${host} ${listing}`, { body, number });
    return number;
  }

  return (request) => {
    const found = answer(request);
    const { body, headers, listing, status } = found.answer;
    if (listing === undefined || status !== 200) return found;
    const number = numberOf(request.headers.host ?? '', `${listing.kind} ${listing.project}`, body);
    const etag = `"${number}"`;
    const asked = request.headers['if-none-match'];
    if (asked === etag) {
      return { ...found, answer: { ...emptyAnswer(304, { etag }), listing } };
    }
    return { ...found, answer: { ...found.answer, headers: { ...headers, etag } } };
  };
}
