import { echoesOf } from './cast.ts';
import { type Exchange, type Hostility, listing, GOOD, TURNED, whole } from './exchange.ts';

const CODES = [300, 301, 302, 303, 305, 307, 308];

/** Targets of redirects, most of them with the key: another server, or this one, which also notices a request. */
const FORMS: Readonly<Record<string, (exchange: Exchange) => string>> = {
  absolute: ({ elsewhere, key }) => `http://${elsewhere}/v2/projects/stolen/prompts/?key=${key}`,
  'protocol-relative': ({ elsewhere, key }) => `//${elsewhere}/${key}`,
  'of this server': ({ key }) => `/v2/projects/stolen/prompts/?key=${key}`,
  relative: () => '../../stolen/prompts/',
  'with a login': ({ elsewhere, key }) => `http://${key}:${key}@${elsewhere}/`,
  'of a script': ({ key }) => `javascript:alert("${key}")`,
  'with the key in each form': ({ key }) => `/?${echoesOf(key).join('&')}`,
  empty: () => '',
};

/** Answers that may make a client send a request elsewhere. */
export const REDIRECTS: Readonly<Record<string, Hostility>> = {
  ...Object.fromEntries(
    CODES.map((code) => [`redirect ${code}`, redirect(code, FORMS['absolute'])]),
  ),
  ...Object.fromEntries(
    Object.entries(FORMS).map(([form, to]) => [`redirect, ${form}`, redirect(307, to)]),
  ),
  'redirect to nowhere': { ends: ['redirect'], answer: whole(302, TURNED) },
  'refresh header': {
    ends: ['ok'],
    answer: listing(GOOD, (exchange: Exchange) => {
      const url = FORMS['absolute']?.(exchange);
      return { refresh: `0; url=${url}`, location: `${url}`, link: `<${url}>; rel=preload` };
    }),
  },
  'refresh in the page': {
    ends: ['invalid_response'],
    answer: listing(
      ({ elsewhere, key }) =>
        `<meta http-equiv="refresh" content="0; url=http://${elsewhere}/${key}">`,
      { 'content-type': 'text/html' },
    ),
  },
  'alternative service': {
    ends: ['ok'],
    answer: listing(GOOD, ({ elsewhere }: Exchange) => ({
      'alt-svc': `http/1.1="${elsewhere}"; ma=86400`,
    })),
  },
};

function redirect(code: number, to: ((exchange: Exchange) => string) | undefined): Hostility {
  return {
    ends: ['redirect'],
    answer: whole(code, TURNED, (exchange) => ({ location: to?.(exchange) ?? '' })),
  };
}
