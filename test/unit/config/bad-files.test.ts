import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { errorOf, load, places } from './loading.ts';

const directory = join(import.meta.dirname, 'bad');

/** Expected faults of each file in bad/, as `line:column message`. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'alias-bomb': ['6:36 not usable YAML: more than 1000000 values once aliases are expanded'],
  'alias-circle': ['5:5 not usable YAML: this alias (*) refers to a value that contains it'],
  'alias-without-anchor': [
    '4:11 not valid YAML: put a value that starts with * in quotes, such as "*/30 * * * * *"; an alias (*name) needs an anchor (&name) before it',
  ],
  'allowed-hosts': [
    '9:7 web.allowed_hosts[1] must be a host name such as evalwatch.example.com, without scheme, port or wildcard, not "https://evalwatch.example.com"',
    '10:7 web.allowed_hosts[2] must be a host name such as evalwatch.example.com, without scheme, port or wildcard, not "evalwatch.example.com:10570"',
    '11:7 web.allowed_hosts[3] must be a host name such as evalwatch.example.com, without scheme, port or wildcard, not "*.example.com"',
    '12:7 web.allowed_hosts[4] must be a host name such as evalwatch.example.com, without scheme, port or wildcard, not empty',
    '13:7 web.allowed_hosts[5] must be a host name, not a number',
  ],
  'api-key-in-the-file': [
    '2:3 service needs api_key_file or api_key_env',
    '3:3 unknown key "api_key", did you mean "api_key_file"?',
  ],
  'api-key-without-a-space': [
    '1:10 service needs api_key_file or api_key_env',
    '1:54 unknown key, not shown because it could contain a secret: is there a space after the colon?',
  ],
  'bad-cron': ['4:11 schedule "every minute" must be a cron expression'],
  'bad-cron-in-project': ['6:15 projects[0].schedule "* *" must be a cron expression'],
  'ca-file-directory': [
    `4:12 service.ca_file "${directory}" cannot be read: this is a directory, not a file`,
  ],
  'ca-file-missing': [
    `4:12 service.ca_file "${directory}/nowhere.pem" cannot be read: there is no such file`,
  ],
  'ca-file-without-certificates': [
    `4:12 service.ca_file "${directory}/ca-file-missing.yaml" is not a PEM file: no certificate found`,
  ],
  'cron-at-daily': ['4:11 not valid YAML: put a value that starts with %, @ or ` in quotes'],
  'cron-without-quotes': [
    '4:16 not valid YAML: put a value that starts with * in quotes, such as "*/30 * * * * *"; an alias (*name) needs an anchor (&name) before it',
  ],
  'duplicate-key': ['5:1 duplicate key "jitter", first given on line 4'],
  'duplicate-key-in-project': ['7:5 duplicate key "datasets", first given on line 6'],
  'duplicate-project': ['7:9 projects[2].id "a" duplicates the id on line 5'],
  'duration-ascending': ['4:12 service.timeout must be a duration such as 10s, not "30s1m"'],
  'duration-bare-number': [
    '4:12 service.timeout must be a duration such as 10s, not "10", did you mean "10s"?',
  ],
  'duration-bare-number-in-quotes': [
    '4:12 service.timeout must be a duration such as 10s, not "10", did you mean "10s"?',
  ],
  'duration-bare-number-of-days': [
    '7:14 store.retention must be a duration such as 90d, not "30", did you mean "30d"?',
  ],
  'duration-empty': ['4:12 service.timeout must be a duration such as 10s, not empty'],
  'duration-fraction': ['4:12 service.timeout must be a duration such as 10s, not "1.5s"'],
  'duration-in-words': [
    '4:12 service.timeout must be a duration such as 10s, not "10 seconds", did you mean "10s"?',
  ],
  'duration-too-long': ['4:12 service.timeout must be from 100ms to 10m, not "11m"'],
  'duration-too-short': ['4:12 service.timeout must be from 100ms to 10m, not "99ms"'],
  empty: [
    '1:1 service.base_url is missing: it must be the address of the Evaluation Service, such as https://evaluation.example.com',
    '1:1 projects is missing: it must be a list of at least one project',
    '1:1 service needs api_key_file or api_key_env',
  ],
  'empty-value': ['4:10 timezone is empty: it must be a time zone such as UTC or Europe/Berlin'],
  'everything-at-once': [
    '2:3 service needs api_key_file or api_key_env',
    '2:13 service.base_url must start with https://, unless allow_http is true: anyone on the network could read the API key',
    '3:3 unknown key "timout", did you mean "timeout"?',
    '4:12 service.retries must be a whole number from 0 to 10, not 11',
    '5:1 unknown key "scheduel", did you mean "schedule"?',
    '6:11 timezone must be a time zone such as UTC or Europe/Berlin, not "Europe/Berln", did you mean "Europe/Berlin"?',
    '9:9 projects[1].id "a" duplicates the id on line 8',
    '10:15 projects[1].schedule "often" must be a cron expression',
    '12:10 log.level must be one of debug, info, warn, error, not "loud"',
  ],
  expectations: [
    '4:16 expect.max_pending must be auto, off or a duration such as 30m, not "30", did you mean "30m"?',
    '5:16 expect.max_running must be from 1s to 365d, not "400d"',
    '6:22 expect.max_failure_ratio must be a number from 0 to 0.8, or off, not 0.9',
    '7:3 unknown key "max_runing", did you mean "max_running"?',
    '10:11 projects[0].team must be 1 to 64 letters, digits, _, . or -',
    '12:20 projects[0].expect.max_running must be auto, off or a duration such as 30m, not "2 hours", did you mean "2h"?',
    '13:7 unknown key "max_runnin", did you mean "max_running"?',
    '15:11 projects[1].team must be the name of a team, not 5: put it in quotes',
    '16:5 unknown key "max_running": it belongs under "expect"',
    '18:26 projects[1].expect.max_failure_ratio must be a number from 0 to 0.8, or off, not "high"',
    '20:12 projects[2].expect is empty: it must be a mapping (key: value)',
    '22:11 projects[3].team must be the name of a team, not empty',
    '24:26 projects[3].expect.max_failure_ratio must be a number from 0 to 0.8, or off, not "20%"',
  ],
  heartbeat: [
    '7:8 heartbeat.url must be an address that starts with http:// or https://',
    '7:8 heartbeat.url cannot be combined with url_file: remove one of them',
    '8:13 heartbeat.url_file must be the path of a file that contains the address, not the address itself',
    '9:12 heartbeat.url_env must be the name of an environment variable, made of letters, digits and _',
    '9:12 heartbeat.url_env cannot be combined with url_file: remove one of them',
  ],
  'heartbeat-as-text': ['6:12 heartbeat must be a mapping (key: value), not a text'],
  'heartbeat-twice': ['7:8 heartbeat.url cannot be combined with url_file: remove one of them'],
  'heartbeat-with-login': ['7:8 heartbeat.url must not contain a user or a password'],
  'key-as-variable': [
    '3:16 service.api_key_env must be the name of an environment variable, made of letters, digits and _',
  ],
  'key-as-variable-in-capitals': [
    '3:16 the environment variable (service.api_key_env) is not set or is empty; its name is not shown because it could be the secret itself',
  ],
  'key-at-the-wrong-level': ['4:1 unknown key "timeout": it belongs under "service"'],
  'key-file-empty': ['3:17 service.api_key_file must be a path, not empty'],
  'key-in-the-wrong-section': ['6:5 unknown key "retention": it belongs under "store"'],
  'key-missing': ['2:3 service needs api_key_file or api_key_env'],
  'key-missing-for-one': [
    '6:5 projects[1] "b" needs api_key_file or api_key_env, because service has neither',
  ],
  'key-that-is-a-list': ['4:3 a key must be a text, not a list or a mapping'],
  'key-twice': [
    '4:16 service.api_key_env cannot be combined with api_key_file: remove one of them',
  ],
  'key-twice-in-project': [
    '6:18 projects[0].api_key_env cannot be combined with api_key_file: remove one of them',
  ],
  'key-variable-not-set': [
    '3:16 environment variable EVALWATCH_TEST_UNSET (service.api_key_env) is not set or is empty',
  ],
  'key-variable-prototype': [
    '3:16 the environment variable (service.api_key_env) is not set or is empty; its name is not shown because it could be the secret itself',
  ],
  list: ['1:1 the file must be a mapping (key: value)'],
  'listen-colon-port': [
    '7:11 web.listen must be host:port, such as 127.0.0.1:10570, not ":10570", did you mean "0.0.0.0:10570"?',
  ],
  'listen-ipv6-without-brackets': [
    '7:11 web.listen must be host:port, such as 127.0.0.1:10570, not "::1:10570", did you mean "[::1]:10570"?',
  ],
  'listen-not-an-address': [
    '7:11 web.listen must be host:port, such as 127.0.0.1:10570, not "256.0.0.1:80"',
  ],
  'listen-port-only': [
    '7:11 web.listen must be host:port, such as 127.0.0.1:10570, not "10570", did you mean "127.0.0.1:10570"?',
  ],
  'listen-port-too-large': ['7:11 web.listen must have a port from 0 to 65535, not 65536'],
  'listen-url': [
    '7:11 web.listen must be host:port, such as 127.0.0.1:10570, not "http://127.0.0.1:80"',
  ],
  'listen-without-port': [
    '7:11 web.listen must be host:port, such as 127.0.0.1:10570, not "127.0.0.1", did you mean "127.0.0.1:10570"?',
  ],
  'log-level': [
    '7:10 log.level must be one of debug, info, warn, error, not "warning", did you mean "warn"?',
  ],
  'merge-key': ['4:1 unknown key "<<": merge keys are not supported'],
  'missing-base-url': [
    '2:3 service.base_url is missing: it must be the address of the Evaluation Service, such as https://evaluation.example.com',
  ],
  'missing-service': [
    '1:1 service.base_url is missing: it must be the address of the Evaluation Service, such as https://evaluation.example.com',
    '1:1 service needs api_key_file or api_key_env',
  ],
  'no-projects': ['1:1 projects is missing: it must be a list of at least one project'],
  'number-infinite': [
    '4:28 service.max_requests_per_second must be a number from 0 to 10000, not Infinity',
  ],
  'number-negative': ['4:12 service.retries must be a whole number from 0 to 10, not -1'],
  'number-too-large': ['4:12 service.retries must be a whole number from 0 to 10, not 11'],
  'only-comments': [
    '1:1 service.base_url is missing: it must be the address of the Evaluation Service, such as https://evaluation.example.com',
    '1:1 projects is missing: it must be a list of at least one project',
    '1:1 service needs api_key_file or api_key_env',
  ],
  'project-id-dots': ['5:9 projects[0].id must not be "."', '6:9 projects[1].id must not be ".."'],
  'project-id-empty': ['5:9 projects[0].id must be the id of a project, not empty'],
  'project-id-surrogate': [
    '5:9 projects[0].id must be valid Unicode: it has half of a surrogate pair',
  ],
  'project-id-too-long': ['5:9 projects[0].id must have at most 512 characters, not 513'],
  'project-without-id': ['5:5 projects[0].id is missing: it must be the id of a project'],
  'projects-empty': ['4:10 projects is empty: it must be a list of at least one project'],
  'projects-empty-list': ['4:11 projects must be a list of at least one project'],
  'projects-mapping': ['5:3 projects must be a list of projects, not a mapping: write `- id: ID`'],
  'projects-of-texts': [
    '5:5 projects[0] must be a mapping (key: value), not a text: write `- id: checkout-bot`',
    '6:4 projects[1] is empty: it must be a mapping (key: value)',
  ],
  'projects-text': [
    '4:11 projects must be a list of projects, not a text: write `- id: checkout-bot`',
  ],
  'prototype-keys': ['4:1 unknown key "__proto__"', '5:1 unknown key "constructor"'],
  'proxy-login-not-encoded': [
    '4:14 service.proxy_url must have a percent-encoded user and password: write % as %25',
  ],
  'proxy-of-another-scheme': [
    '4:14 service.proxy_url must be an address that starts with http:// or https://',
  ],
  'prompt-url-in-the-host': [
    '4:15 service.prompt_url must have its placeholders after the host, such as /prompts/{prompt_id}',
  ],
  'prompt-url-of-another-scheme': [
    '4:15 service.prompt_url must be an address that starts with http:// or https://',
  ],
  'prompt-url-open-brace': [
    '4:15 service.prompt_url must have no other { } than {prompt_id} and {project}',
  ],
  'prompt-url-unknown-placeholder': [
    '4:15 service.prompt_url must have no other { } than {prompt_id} and {project}, not {promptid}, did you mean "{prompt_id}"?',
  ],
  'prompt-url-with-login': ['4:15 service.prompt_url must not contain a user or a password'],
  'prompt-url-without-prompt': ['4:15 service.prompt_url must contain {prompt_id}'],
  'proxy-with-path': [
    '4:14 service.proxy_url must have only scheme, host and port, such as http://proxy.example.com:3128',
  ],
  'external-url-of-another-scheme': [
    '7:17 web.external_url must be an address that starts with http:// or https://',
  ],
  'external-url-with-login': ['7:17 web.external_url must not contain a user or a password'],
  'external-url-with-query': ['7:17 web.external_url must have no query (?) and no fragment (#)'],
  'service-list': ['2:3 service must be a mapping (key: value), not a list'],
  'service-text': ['1:10 service must be a mapping (key: value), not a text'],
  'size-bare-number': [
    '4:22 service.max_response_size must be a size such as 64MiB, not "1048576", did you mean "1048576B"?',
  ],
  'size-decimal': [
    '4:22 service.max_response_size must be a size such as 64MiB, not "64MB", did you mean "64MiB"?',
  ],
  'size-too-large': ['4:22 service.max_response_size must be from 1KiB to 256MiB, not "512MiB"'],
  'store-lease-of-sqlite': [
    '7:10 store.lease applies to PostgreSQL only: add postgres_url_file or postgres_url_env, or remove it',
  ],
  'store-twice': ['7:9 store.path cannot be combined with postgres_url_file: remove one of them'],
  'store-url-as-file': [
    '7:22 store.postgres_url_file must be the path of a file that contains the address, not the address itself',
  ],
  'store-address-as-file': [
    '7:22 store.postgres_url_file must be the path of a file that contains the address, not the address itself',
  ],
  'path-with-nul': ['4:17 service.api_key_file must be a path'],
  'store-url-as-path': [
    '7:9 store.path must be the path of a SQLite file; for PostgreSQL use postgres_url_file or postgres_url_env',
  ],
  'store-url-as-variable': [
    '7:21 store.postgres_url_env must be the name of an environment variable, made of letters, digits and _',
  ],
  'store-url-in-the-file': ['7:3 unknown key "postgres_url", did you mean "postgres_url_env"?'],
  'store-url-twice': [
    '8:21 store.postgres_url_env cannot be combined with postgres_url_file: remove one of them',
  ],
  'store-variable-not-set': [
    '7:21 environment variable DATABASE_URL (store.postgres_url_env) is not set or is empty',
  ],
  'syntax-bracket': ['5:1 not valid YAML: wrong indentation, or a bracket that is not closed'],
  'syntax-colon': ['2:3 not valid YAML: missing colon after a key, or wrong indentation'],
  'syntax-escape': [
    '2:15 not valid YAML: unknown escape in double quotes; single quotes keep backslashes as they are',
  ],
  'syntax-first-only': ['3:1 not valid YAML: wrong indentation, or a bracket that is not closed'],
  'syntax-indent': ['3:1 not valid YAML: wrong indentation, or a bracket that is not closed'],
  'syntax-quote': [
    '5:1 not valid YAML: missing quote, bracket or comma, or no space after a colon',
  ],
  'syntax-space': [
    '3:3 not valid YAML: missing quote, bracket or comma, or no space after a colon',
  ],
  'syntax-tab': ['2:1 not valid YAML: indent with spaces, not with tabs'],
  text: ['1:1 the file must be a mapping (key: value)'],
  'timezone-offset': [
    '4:11 timezone must be a time zone such as UTC or Europe/Berlin, not "+01:00"',
  ],
  'two-documents': ['6:1 a second document starts here, but the file must have only one'],
  'unknown-key': ['4:1 unknown key "scheduel", did you mean "schedule"?'],
  'unknown-key-camel-case': ['4:3 unknown key "maxConcurrency", did you mean "max_concurrency"?'],
  'unknown-key-without-suggestion': ['4:3 unknown key "colour"'],
  'unknown-tag': ['3:17 unknown tag (!): remove it, or put a value that starts with ! in quotes'],
  'unknown-timezone': [
    '4:11 timezone must be a time zone such as UTC or Europe/Berlin, not "Europe/Berln", did you mean "Europe/Berlin"?',
  ],
  'unknown-timezone-far-off': [
    '4:11 timezone must be a time zone such as UTC or Europe/Berlin, not "Mars/Olympus"',
  ],
  'url-almost-loopback': [
    '2:13 service.base_url must start with https://, unless allow_http is true: anyone on the network could read the API key',
  ],
  'url-of-another-scheme': [
    '2:13 service.base_url must be an address that starts with http:// or https://',
  ],
  'url-plain-http': [
    '2:13 service.base_url must start with https://, unless allow_http is true: anyone on the network could read the API key',
  ],
  'url-plain-http-by-proxy': [
    '2:13 service.base_url must start with https://, unless allow_http is true: the proxy could read the API key',
  ],
  'url-with-fragment': ['2:13 service.base_url must have no query (?) and no fragment (#)'],
  'url-with-login': [
    '2:13 service.base_url must not contain a user or a password: name an API key with api_key_file or api_key_env',
  ],
  'url-with-query': ['2:13 service.base_url must have no query (?) and no fragment (#)'],
  'url-with-space': [
    '2:13 service.base_url must be an address that starts with http:// or https://',
  ],
  'url-without-scheme': [
    '2:13 service.base_url must be an address that starts with http:// or https://',
  ],
  'wrong-types': [
    '2:13 service.base_url must be the address of the Evaluation Service, such as https://evaluation.example.com, not a list',
    '3:15 service.allow_http must be true or false, not "yes"',
    '4:17 service.api_key_file must be a path, not a mapping',
    '5:12 service.timeout must be a duration such as 10s, not true',
    '6:12 service.retries must be a whole number from 0 to 10, not "three"',
    '7:20 service.max_concurrency must be a whole number from 1 to 256, not 2.5',
    '8:28 service.max_requests_per_second must be a number from 0 to 10000, not "10"',
    '9:22 service.max_response_size must be a size such as 64MiB, not a list',
    '10:11 schedule must be a cron expression, not 30: put it in quotes',
    '11:11 timezone must be a time zone such as UTC or Europe/Berlin, not "1"',
    '12:9 jitter must be a duration such as 10s, not a mapping',
    '13:16 missing_after must be a whole number from 1 to 1000, not false',
    '15:9 projects[0].id must be the id of a project, not 4711: put it in quotes',
    '16:15 projects[0].datasets must be true or false, not 1',
    '18:9 store.path must be a path, not a number: put it in quotes',
    '20:21 web.enable_lifecycle must be true or false, not "true"',
    '22:10 log.level must be one of debug, info, warn, error, not 3',
  ],
};

describe('a bad configuration file', () => {
  it.each(Object.entries(EXPECTED))('%s is rejected with every error', async (name, expected) => {
    const file = join(directory, `${name}.yaml`);
    const error = await errorOf(load(file));
    expect(places(error.faults)).toEqual(expected);
    expect(error.faults.every((fault) => fault.file === file)).toBe(true);
    expect(error.message).toBe(
      expected.map((fault) => `${file}:${fault.replace(' ', ': ')}`).join('\n'),
    );
    expect(error.message).not.toContain('5ecret');
  });

  it('has an entry in the table of expected errors', () => {
    const files = readdirSync(directory).map((file) => file.replace(/\.yaml$/, ''));
    expect(files.toSorted()).toEqual(Object.keys(EXPECTED).toSorted());
  });
});
