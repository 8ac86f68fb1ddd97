// Values of a form, by its JSON schema.

import type { FormChoice, FormField, FormSchema } from '../rpc/types';

export type Value = string | boolean | string[];
export type Values = Record<string, Value>;

/** Choices of a field, in any of the forms that agents use; `null` if every value is allowed. */
export function choicesOf({ enum: values, enumNames, oneOf, anyOf, items }: FormField): FormChoice[] | null {
  const titled = oneOf ?? anyOf ?? items?.oneOf ?? items?.anyOf;
  if (titled) return titled;
  const plain = values ?? items?.enum;
  return plain ? plain.map((value, index) => ({ const: value, title: enumNames?.[index] ?? value })) : null;
}

function defaultOf(field: FormField): Value {
  if (field.type === 'boolean') return field.default === true;
  if (field.type === 'array') return Array.isArray(field.default) ? field.default.map(String) : [];
  return field.default === undefined || field.default === null ? '' : String(field.default);
}

export function defaults({ properties }: FormSchema): Values {
  return Object.fromEntries(Object.entries(properties ?? {}).map(([name, field]) => [name, defaultOf(field)]));
}

function isNumber({ type }: FormField): boolean {
  return type === 'number' || type === 'integer';
}

function numberProblem(label: string, field: FormField, value: string): string | null {
  const number = Number(value);
  if (Number.isNaN(number) || (field.type === 'integer' && !Number.isInteger(number))) {
    return `${label} must be ${field.type === 'integer' ? 'an integer' : 'a number'}.`;
  }
  if (field.minimum !== undefined && number < field.minimum) return `${label} must be at least ${field.minimum}.`;
  if (field.maximum !== undefined && number > field.maximum) return `${label} must be at most ${field.maximum}.`;
  return null;
}

function listProblem(label: string, field: FormField, value: string[]): string | null {
  if (field.minItems !== undefined && value.length < field.minItems) return `${label} needs at least ${field.minItems} choices.`;
  if (field.maxItems !== undefined && value.length > field.maxItems) return `${label} can have at most ${field.maxItems} choices.`;
  return null;
}

function textProblem(label: string, field: FormField, value: string): string | null {
  if (field.minLength !== undefined && value.length < field.minLength) return `${label} needs at least ${field.minLength} characters.`;
  if (field.maxLength !== undefined && value.length > field.maxLength) return `${label} can have at most ${field.maxLength} characters.`;
  return null;
}

/** What is wrong with the values, for people; `null` if nothing is. acpipe would take a wrong answer for a refusal. */
export function problem({ properties, required }: FormSchema, values: Values): string | null {
  for (const [name, field] of Object.entries(properties ?? {})) {
    const label = field.title ?? name;
    const value = values[name] ?? '';
    const isEmpty = value === '' || (Array.isArray(value) && value.length === 0);
    if (isEmpty && required?.includes(name)) return `${label} is required.`;
    if (isEmpty || typeof value === 'boolean') continue;
    const found = Array.isArray(value)
      ? listProblem(label, field, value)
      : isNumber(field)
        ? numberProblem(label, field, value)
        : textProblem(label, field, value);
    if (found !== null) return found;
  }
  return null;
}

/** The answer. Fields that the user left empty are left out. */
export function content({ properties }: FormSchema, values: Values): Record<string, unknown> {
  const entries = Object.entries(properties ?? {}).flatMap(([name, field]): [string, unknown][] => {
    const value = values[name] ?? '';
    if (value === '' || (Array.isArray(value) && value.length === 0)) return [];
    return [[name, isNumber(field) ? Number(value) : value]];
  });
  return Object.fromEntries(entries);
}
