import { echoesOf } from './cast.ts';
import { FORGED, type Exchange, type Hostility, TURNED, whole } from './exchange.ts';

/** Returns an error as the service documents it for a 422, with the key and a forged line. */
function complaint({ key }: Exchange): string {
  const msg = `wrong key ${echoesOf(key).join(' ')}${FORGED}`;
  const detail = [{ loc: ['path', key], msg, type: 'echo' }];
  return JSON.stringify({ detail });
}

const refused = (code: number, headers = {}) => whole(code, complaint, headers);

/** Answers other than 200. */
export const STATUSES: Readonly<Record<string, Hostility>> = {
  201: { ends: ['invalid_response'], answer: whole(201, TURNED, { location: '/v2/elsewhere/' }) },
  204: { ends: ['invalid_response'], answer: (exchange) => noBody(exchange, 204) },
  206: { ends: ['invalid_response'], answer: whole(206, TURNED) },
  226: { ends: ['invalid_response'], answer: whole(226, TURNED) },
  '304 that nobody asked for': {
    ends: ['invalid_response'],
    answer: (exchange) => noBody(exchange, 304),
  },
  400: { ends: ['client_error'], answer: refused(400) },
  401: { ends: ['auth'], answer: refused(401) },
  402: { ends: ['client_error'], answer: whole(402, TURNED) },
  403: { ends: ['auth'], answer: refused(403) },
  404: { ends: ['not_found'], answer: refused(404) },
  407: { ends: ['client_error'], answer: refused(407, { 'proxy-authenticate': 'Basic' }) },
  408: { ends: ['client_error'], answer: refused(408) },
  410: { ends: ['client_error'], answer: whole(410, TURNED) },
  422: { ends: ['validation'], answer: refused(422) },
  '422 with a detail of 2 MiB': {
    ends: ['validation'],
    answer: whole(422, JSON.stringify({ detail: 'x'.repeat(2 * 1024 * 1024) })),
  },
  429: { ends: ['rate_limited'], answer: refused(429) },
  '429, come back soon': { ends: ['rate_limited'], answer: refused(429, { 'retry-after': '1' }) },
  '429, come back when pigs fly': {
    ends: ['rate_limited'],
    answer: refused(429, { 'retry-after': '-1e999' }),
  },
  '429, come back in an hour': {
    ends: ['rate_limited'],
    answer: refused(429, { 'retry-after': '3600' }),
    holds: true,
  },
  500: { ends: ['server_error'], answer: refused(500) },
  502: { ends: ['server_error'], answer: whole(502, TURNED) },
  '503, come back soon': { ends: ['server_error'], answer: refused(503, { 'retry-after': '1' }) },
  '503, come back in 4 minutes': {
    ends: ['server_error'],
    answer: refused(503, { 'retry-after': '240' }),
    holds: true,
  },
  599: { ends: ['server_error'], answer: whole(599, TURNED) },
  999: { ends: ['invalid_response'], answer: whole(999, TURNED) },
};

function noBody(exchange: Exchange, code: number): void {
  exchange.socket.write(`HTTP/1.1 ${code} ${exchange.key}\r\netag: "e"\r\n\r\n`, 'latin1');
  exchange.answered();
}
