/** Types for the part of WebAssembly used here. TypeScript declares it only for browsers, and @types/node not at all. */
declare namespace WebAssembly {
  const Module: new (code: Uint8Array) => object;
  const Instance: new (module: object) => { readonly exports: unknown };
}
