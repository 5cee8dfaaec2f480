/** Source of a secret: an API key (docs/specification.md#api-keys) or the connection string of the database. */
export type SecretSource =
  | { readonly file: string }
  /** `value` is that of the variable `env` when the configuration was loaded; undefined if it was unset or empty. */
  | { readonly env: string; readonly value: string | undefined };
