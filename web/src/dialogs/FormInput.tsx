import { useId } from 'react';
import type { FormChoice, FormField } from '../rpc/types';
import { choicesOf, type Value } from './formValues';

interface Props {
  name: string;
  field: FormField;
  isRequired: boolean;
  value: Value | undefined;
  change(value: Value): void;
}

const TYPES: Record<string, string> = { email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local', password: 'password' };

function inputType({ type, format, writeOnly }: FormField): string {
  if (writeOnly) return 'password';
  if (type === 'number' || type === 'integer') return 'number';
  return TYPES[format ?? ''] ?? 'text';
}

interface ChoiceProps {
  type: 'radio' | 'checkbox';
  group: string;
  choice: FormChoice;
  isChosen: boolean;
  choose(): void;
}

function ChoiceInput({ type, group, choice, isChosen, choose }: ChoiceProps) {
  return (
    <label className="choice">
      <input type={type} name={group} checked={isChosen} onChange={choose} />
      <span>
        {choice.title ?? choice.const}
        {choice.description && <small>{choice.description}</small>}
      </span>
    </label>
  );
}

function Choices({ name, field, value, change, choices }: Omit<Props, 'isRequired'> & { choices: FormChoice[] }) {
  const group = useId();
  const isMultiple = field.type === 'array';
  const chosen = Array.isArray(value) ? value : [value];
  const toggle = (item: string) => {
    if (!isMultiple) return change(item);
    const others = chosen.filter((other) => other !== item) as string[];
    change(others.length < chosen.length ? others : [...others, item]);
  };
  return (
    <fieldset>
      <legend>{field.title ?? name}</legend>
      {field.description && <p className="hint">{field.description}</p>}
      {choices.map((choice) => (
        <ChoiceInput
          key={choice.const}
          type={isMultiple ? 'checkbox' : 'radio'}
          group={group}
          choice={choice}
          isChosen={chosen.includes(choice.const)}
          choose={() => toggle(choice.const)}
        />
      ))}
    </fieldset>
  );
}

export function FormInput(props: Props) {
  const { name, field, isRequired, value, change } = props;
  const help = useId();
  const choices = choicesOf(field);
  if (choices !== null) return <Choices {...props} choices={choices} />;
  const label = field.title ?? name;
  if (field.type === 'boolean') {
    return (
      <label className="choice">
        <input type="checkbox" checked={value === true} onChange={(event) => change(event.target.checked)} />
        <span>
          {label}
          {field.description && <small>{field.description}</small>}
        </span>
      </label>
    );
  }
  return (
    <label className="field">
      <span>
        {label}
        {isRequired && ' (required)'}
      </span>
      {field.description && <small id={help}>{field.description}</small>}
      <input
        type={inputType(field)}
        step={field.type === 'integer' ? 1 : 'any'}
        autoComplete="off"
        required={isRequired}
        aria-describedby={field.description ? help : undefined}
        value={String(value ?? '')}
        onChange={(event) => change(event.target.value)}
      />
    </label>
  );
}
