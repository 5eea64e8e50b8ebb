/** Elements in row-major order. Complex numbers are pairs; `f16`, `bf16` and others bytes. */
export type Data =
  | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array
  | Float32Array | Float64Array;

/** The type of an argument, a result or a parameter, such as `f32[3,4]`. */
export interface Type {
  readonly name: string;
  readonly type: string;
  readonly dtype: number;
  readonly shape: readonly number[];
  readonly bytes: number;
}

/** What the C front end reports. */
export class FxflowError extends Error {
  readonly code: "BAD_ARGUMENT" | "BAD_FILE" | "BAD_PLUGIN" | "FAILED" | "NO_MEMORY";
}

/** A plug-in and its devices. */
export class Runtime {
  /**
   * Opens a plug-in; without a path, the one that FXFLOW_PJRT_PLUGIN names. Options such as
   * `{ cpu_device_count: 4 }` are the plug-in's.
   */
  constructor(plugin?: string | null, options?: Record<string, string | number>);
  readonly platform: string;
  readonly deviceCount: number;
  /** Loads a file on a device. */
  load(file: string, device?: number): Model;
}

/** A file on a device: functions, and the state that they share. */
export class Model {
  readonly functions: Readonly<Record<string, { inputs: readonly Type[]; outputs: readonly Type[] }>>;
  readonly params: readonly Type[];
  /**
   * Calls a function and waits for it. New parameters replace the model's. Returns the
   * results that are wanted: all of them by default.
   */
  call(name: string, inputs?: Record<string, Data | number>, wanted?: readonly string[]): Record<string, Data>;
  getParam(name: string): Data;
  setParam(name: string, data: Data | number): void;
  /** Writes the file with the present parameters, atomically. */
  save(file: string): void;
  /** Frees the device's memory at once; otherwise the garbage collector does. */
  close(): void;
}
