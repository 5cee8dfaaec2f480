/** A function of src/ that is given text of others. */
export interface TextFunction {
  /** Its module and its name, `config/values/size.ts parseSize`; then, behind a comma, what else matters. */
  readonly name: string;
  /** Where whoever calls it lets no longer text pass, characters. */
  readonly maxLength?: number;
  readonly call: (text: string) => unknown;
}
