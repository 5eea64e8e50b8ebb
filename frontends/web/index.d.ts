/** Elements in row-major order; `f16` as bits. */
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

/** A refusal: the file, a name, a type. */
export class FxflowError extends Error {}

export interface Options {
  /** The module `onnxruntime-web`. */
  ort: unknown;
  /** Whether to run on the GPU where the browser can; by default in WebAssembly. */
  webgpu?: boolean;
  /** Whether ONNX Runtime prints warnings. */
  verbose?: boolean;
}

/** A file that `fxflow.export.save(..., onnx=[...])` wrote, and its state. */
export class Model {
  /** Loads a file from an address, or from its bytes. */
  static load(source: string | URL | ArrayBuffer | Uint8Array, options: Options): Promise<Model>;
  readonly functions: Readonly<Record<string, { inputs: readonly Type[]; outputs: readonly Type[] }>>;
  readonly params: readonly Type[];
  /** Prepares a function, which its first call does otherwise. */
  compile(name: string): Promise<void>;
  /** Calls a function. New parameters replace the model's; the results are returned. */
  call(name: string, inputs?: Record<string, Data | number>): Promise<Record<string, Data>>;
  /** Reads a parameter. */
  get(name: string): Promise<Data>;
  /** Replaces a parameter. */
  set(name: string, data: Data | number): void;
  /** The bytes of the file with the present parameters, for a download or IndexedDB. */
  save(): Promise<Uint8Array>;
}
