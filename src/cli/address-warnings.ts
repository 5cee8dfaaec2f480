/** Address of the service in config/evalwatch.yaml and the other examples. */
const EXAMPLE = 'https://evaluation.example.com';

/**
 * Warns of the address of the examples, and of a base address that ends in the version of the API: evalwatch adds `/v2`
 * itself (docs/specification.md#requests), and the service answers 404 to `/v2/v2`.
 * @param baseUrl without a slash at its end
 */
export function addressWarnings(baseUrl: string): readonly string[] {
  if (baseUrl === EXAMPLE) {
    return [
      `service.base_url is ${EXAMPLE}, so this configuration is an example: name your own with --config or EVALWATCH_CONFIG, or set the address of your service`,
    ];
  }
  if (!baseUrl.endsWith('/v2')) return [];
  return [
    `service.base_url ends in /v2, and evalwatch adds /v2 to every path: it will request ${baseUrl}/v2/projects/…; ` +
      'remove /v2, unless the service really has it twice',
  ];
}
