/** A growing list of numbers from 0 to 2^32 - 1 that takes 4 bytes for each. */
export interface NumberList {
  push(number: number): void;
  /** Returns the numbers so far. */
  all(): Uint32Array;
}

/** Creates a list with room for so many numbers, which grows when there are more. */
export function createNumberList(room: number): NumberList {
  let numbers = new Uint32Array(Math.max(64, room));
  let count = 0;
  return {
    push: (number) => {
      if (count === numbers.length) {
        const larger = new Uint32Array(2 * count);
        larger.set(numbers);
        numbers = larger;
      }
      numbers[count] = number;
      count += 1;
    },
    all: () => numbers.subarray(0, count),
  };
}
