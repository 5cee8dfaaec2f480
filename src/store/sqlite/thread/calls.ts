type Signatures<Methods> = { readonly [Name in keyof Methods]: (...args: never[]) => unknown };
type Arguments<Methods extends Signatures<Methods>> = {
  readonly [Name in keyof Methods]: Parameters<Methods[Name]>;
};
type Results<Methods extends Signatures<Methods>> = {
  readonly [Name in keyof Methods]: ReturnType<Methods[Name]>;
};

/** A call of one of these methods, as a message between threads. */
export type Call<
  Methods extends Signatures<Methods>,
  Name extends keyof Methods = keyof Methods,
> = {
  readonly [Each in Name]: { readonly method: Each; readonly args: Arguments<Methods>[Each] };
}[Name];

/** Makes a call that arrived as a message. */
export function makeCall<Methods extends Signatures<Methods>, Name extends keyof Methods>(
  methods: {
    readonly [Each in keyof Methods]: (...args: Arguments<Methods>[Each]) => Results<Methods>[Each];
  },
  { method, args }: Call<Methods, Name>,
): Results<Methods>[Name] {
  return methods[method](...args);
}
