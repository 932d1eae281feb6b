export type Complain = (path: string, message: string) => void;
export type Environment = Readonly<Record<string, string | undefined>>;

const variable = /\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g;

/**
 * Replaces `${NAME}` and `${NAME:-default}` in all texts. A text that is only a variable can become a number
 * or a boolean, as in YAML.
 */
export function expandVariables(
  data: unknown,
  environment: Environment,
  complain: Complain,
  path = '',
): unknown {
  if (typeof data === 'string') return data.includes('${') ? expand(data, environment, complain, path) : data;
  if (Array.isArray(data))
    return data.map((each, index) => expandVariables(each, environment, complain, `${path}[${index}]`));
  if (typeof data !== 'object' || data === null) return data;
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [
      key,
      expandVariables(value, environment, complain, path === '' ? key : `${path}.${key}`),
    ]),
  );
}

function expand(text: string, environment: Environment, complain: Complain, path: string): unknown {
  let isAlone = false;
  const expanded = text.replace(variable, (whole, name: string, otherwise: string | undefined) => {
    isAlone = whole === text;
    const value = environment[name] || otherwise;
    if (value === undefined) complain(path, `the environment variable ${name} is not set`);
    return value ?? '';
  });
  if (!isAlone) return expanded;
  if (/^(true|false)$/.test(expanded)) return expanded === 'true';
  return /^-?\d{1,15}(\.\d+)?$/.test(expanded) ? Number(expanded) : expanded;
}
