// JSON has no enumerations: what is one of Grafana's types is its value here, and Grafana fills in what is not given.
export type Plain<T> = T extends string
  ? `${T}`
  : T extends number | boolean | null | undefined
    ? T
    : T extends (infer U)[]
      ? Plain<U>[]
      : T extends object
        ? { [K in keyof T]?: Plain<T[K]> }
        : T;
