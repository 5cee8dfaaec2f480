import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/app/clock.ts';
import { addressWarnings } from '../../src/cli/address-warnings.ts';
import {
  isPlainHttp,
  parseBaseUrl,
  parseHostName,
  parseListen,
  parseExternalUrl,
  parseHeartbeatUrl,
  parsePromptUrl,
  parseProxyUrl,
} from '../../src/config/values/address.ts';
import { readCertificates, readPrivateKey } from '../../src/config/pem-file.ts';
import { promptUrl, replacePlaceholders } from '../../src/domain/prompt-url.ts';
import { parseDuration, suggestDuration } from '../../src/domain/duration.ts';
import { loadConfig } from '../../src/config/load.ts';
import { readPostgresUrl } from '../../src/config/postgres-url.ts';
import { parseSize, suggestSize } from '../../src/config/values/size.ts';
import {
  couldBeKey,
  actualValue,
  isSafeKey,
  quoteIfSafe,
  quoteId,
  describeUnsetVariable,
} from '../../src/config/redaction.ts';
import { isPath } from '../../src/config/values/option-types.ts';
import { closest, didYouMean } from '../../src/config/suggest.ts';
import { parseTimezone } from '../../src/config/values/timezone.ts';
import { loadWebConfig } from '../../src/config/web-file/web-file.ts';
import { readYaml } from '../../src/config/document/yaml-document.ts';
import { readKey } from '../../src/evaluation-api/api-key.ts';
import { readUrl } from '../../src/store/postgres/url.ts';
import { parseSchedule, validateSchedule } from '../../src/schedule/calendar.ts';
import { readExpression } from '../../src/schedule/expression.ts';
import { zoneOf } from '../../src/schedule/zone.ts';
import { acceptsGzip } from '../../src/simulator/encoding.ts';
import { parseFaults } from '../../src/simulator/faults/fault-text.ts';
import type { TextFunction } from './text-function.ts';

const OPTIONS = ['base_url', 'timeout', 'max_requests_per_second', 'api_key_file'];
/** Maximum size of a secret, or of the URL of the database, in its file. */
const MAX_SECRET = 16 * 1024;

/** Returns the functions of the configuration: its files, their values, and the files that they name. */
export function config(directory: string): readonly TextFunction[] {
  const file = join(directory, 'file');

  function written(text: string): string {
    writeFileSync(file, text);
    return file;
  }

  async function load(text: string): Promise<unknown> {
    return await loadConfig({
      file: written(text),
      env: {},
      validateSchedule,
      requireSecrets: false,
    });
  }

  return [
    { name: 'config/document/yaml-document.ts readYaml', call: readYaml },
    { name: 'config/load.ts loadConfig', call: load },
    {
      name: 'config/load.ts loadConfig, of every option',
      call: (text) => {
        const value = JSON.stringify(text);
        return load(
          `service: {base_url: ${value}, proxy_url: ${value}, timeout: ${value}, max_response_size: ${value}, ${value}: 1}\nschedule: ${value}\ntimezone: ${value}\nprojects: [{id: ${value}, schedule: ${value}}]\nweb: {listen: ${value}}\nlog: {level: ${value}}\n${value}: 1\n`,
        );
      },
    },
    {
      name: 'config/web-file/web-file.ts loadWebConfig, of its values',
      call: (text) => {
        const value = JSON.stringify(text);
        return loadWebConfig(
          written(
            `basic_auth_users: {${value}: ${value}}\nhttp_server_config: {headers: {Content-Security-Policy: ${value}}}\ntls_server_config: {min_version: ${value}, cipher_suites: [${value}]}\n`,
          ),
        );
      },
    },
    {
      name: 'config/pem-file.ts readCertificates',
      call: (text) => readCertificates(written(text)),
    },
    { name: 'config/pem-file.ts readPrivateKey', call: (text) => readPrivateKey(written(text)) },
    { name: 'config/values/address.ts parseBaseUrl', call: parseBaseUrl },
    {
      name: 'cli/address-warnings.ts addressWarnings',
      call: (text) => addressWarnings(`${text}/v2`),
    },
    {
      name: 'config/values/address.ts parseBaseUrl, of what follows the scheme',
      call: (text) => parseBaseUrl(`http://a/${text}`),
    },
    {
      name: 'config/values/address.ts parseExternalUrl',
      call: (text) => parseExternalUrl(`http://a/${text}`),
    },
    {
      name: 'config/values/address.ts parseHeartbeatUrl',
      call: (text) => parseHeartbeatUrl(`http://a/${text}`),
    },
    {
      name: 'config/values/address.ts parsePromptUrl',
      call: (text) => parsePromptUrl(`http://a/{prompt_id}/${text}`),
    },
    {
      name: 'domain/prompt-url.ts replacePlaceholders',
      call: (text) => replacePlaceholders(text, 'x'),
    },
    {
      name: 'domain/prompt-url.ts promptUrl',
      call: (text) =>
        promptUrl('http://a/{prompt_id}?{project}', { project: text, promptId: text }),
    },
    {
      name: 'config/values/address.ts parseProxyUrl',
      call: (text) => parseProxyUrl(`http://${text}`),
    },
    { name: 'config/values/address.ts isPlainHttp', call: (text) => isPlainHttp(`http://${text}`) },
    { name: 'config/values/address.ts parseHostName', call: parseHostName },
    { name: 'config/values/address.ts parseListen', call: parseListen },
    {
      name: 'config/values/address.ts parseListen, of a host',
      call: (text) => parseListen(`${text}:80`),
    },
    { name: 'domain/duration.ts parseDuration', call: parseDuration },
    {
      name: 'domain/duration.ts suggestDuration',
      call: (text) => suggestDuration(text, '10s'),
    },
    { name: 'config/values/size.ts parseSize', call: parseSize },
    { name: 'config/values/size.ts suggestSize', call: suggestSize },
    { name: 'config/suggest.ts closest', call: (text) => closest(text, OPTIONS) },
    { name: 'config/redaction.ts actualValue', call: actualValue },
    { name: 'config/redaction.ts couldBeKey', call: couldBeKey },
    { name: 'config/redaction.ts isSafeKey', call: isSafeKey },
    { name: 'config/redaction.ts quoteId', call: quoteId },
    { name: 'config/redaction.ts quoteIfSafe', call: quoteIfSafe },
    {
      name: 'config/redaction.ts describeUnsetVariable',
      call: (text) => describeUnsetVariable(text),
    },
    { name: 'config/values/option-types.ts isPath', call: isPath },
    { name: 'config/suggest.ts didYouMean', call: didYouMean },
    { name: 'config/values/timezone.ts parseTimezone', call: parseTimezone },
    {
      name: 'config/postgres-url.ts readPostgresUrl',
      call: (text) => readPostgresUrl({ env: 'URL', value: text }),
    },
    {
      name: 'evaluation-api/api-key.ts readKey',
      call: (text) => readKey({ env: 'KEY', value: text }, systemClock),
    },
    { name: 'store/postgres/url.ts readUrl', maxLength: MAX_SECRET, call: readUrl },
    {
      name: 'store/postgres/url.ts readUrl, of what follows the scheme',
      maxLength: MAX_SECRET,
      call: (text) => readUrl(`postgres://${text}`),
    },
    {
      name: 'store/postgres/url.ts readUrl, of a query',
      maxLength: MAX_SECRET,
      call: (text) => readUrl(`postgres://a@b?${text}`),
    },
    { name: 'schedule/expression.ts readExpression', call: readExpression },
    { name: 'schedule/calendar.ts validateSchedule', call: validateSchedule },
    {
      name: 'schedule/calendar.ts validateSchedule, of a field',
      call: (text) => validateSchedule(`${text} * * * *`),
    },
    {
      name: 'schedule/calendar.ts parseSchedule, of a time zone',
      call: (text) => parseSchedule('* * * * *', text),
    },
    { name: 'schedule/zone.ts zoneOf', call: zoneOf },
    { name: 'simulator/encoding.ts acceptsGzip', call: acceptsGzip },
    { name: 'simulator/faults/fault-text.ts parseFaults', call: parseFaults },
    {
      name: 'simulator/faults/fault-text.ts parseFaults, of an argument',
      call: (text) => parseFaults(`redirect=${text}`),
    },
  ];
}
