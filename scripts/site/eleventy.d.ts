/** What we use of Eleventy, which brings no types. */
declare module '@11ty/eleventy' {
  import type { Markdown } from './markdown.ts';

  export interface EleventyConfig {
    setTemplateFormats(formats: readonly string[]): void;
    setUseGitIgnore(isUsed: boolean): void;
    amendLibrary(engine: 'md', amend: (markdown: Markdown) => void): void;
    addTemplate(inputPath: string, content: unknown, data?: object): void;
  }

  export class Eleventy {
    constructor(
      input: string,
      output: string,
      options: {
        readonly quietMode: boolean;
        readonly configPath: undefined;
        readonly config: (config: EleventyConfig) => object;
      },
    );
    disableLogger(): void;
    toJSON(): Promise<
      { readonly inputPath: string; readonly outputPath: string; readonly content: string }[]
    >;
  }
}
