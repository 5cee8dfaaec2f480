/** Function of src/ that reads untrusted text. */
export interface TextFunction {
  /** Module and name, `config/values/size.ts parseSize`; then, after a comma, what else matters. */
  readonly name: string;
  /** Maximum length of the text that callers pass, characters. */
  readonly maxLength?: number;
  readonly call: (text: string) => unknown;
}
