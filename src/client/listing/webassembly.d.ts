/** Types for the part of WebAssembly used here. TypeScript declares it only for browsers, and @types/node not at all. */
declare namespace WebAssembly {
  interface Module {
    readonly module: unique symbol;
  }
  interface Memory {
    readonly buffer: ArrayBuffer;
  }
  interface Global {
    readonly value: unknown;
  }
  type Export = Memory | Global | ((...values: unknown[]) => unknown);
  const Module: new (code: Uint8Array) => Module;
  const Instance: new (module: Module) => { readonly exports: Readonly<Record<string, Export>> };
  const Memory: new (pages: { readonly initial: number }) => Memory;
  const Global: new (type: { readonly value: string }) => Global;
}
