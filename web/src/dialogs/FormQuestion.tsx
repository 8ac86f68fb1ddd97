import { useState, type FormEvent } from 'react';
import { Boundary } from '../layout/Boundary';
import { Markdown } from '../markdown/Markdown';
import type { Question } from '../rpc/types';
import { FormInput } from './FormInput';
import { content, defaults, problem, type Values } from './formValues';

export function FormQuestion({ question, respond }: { question: Question; respond(result: object): void }) {
  const schema = question.schema ?? {};
  const fields = Object.entries(schema.properties ?? {});
  const [values, setValues] = useState<Values>(() => defaults(schema));
  const [error, setError] = useState<string | null>(null);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const found = problem(schema, values);
    setError(found);
    if (found === null) respond({ action: 'accept', content: content(schema, values) });
  };
  return (
    <form onSubmit={submit} noValidate>
      <div className="asked">
        <Boundary name="question" value={question}>
          <Markdown text={question.message} />
        </Boundary>
      </div>
      {fields.map(([name, field]) => (
        <FormInput
          key={name}
          name={name}
          field={field}
          isRequired={schema.required?.includes(name) ?? false}
          value={values[name]}
          change={(value) => {
            setError(null);
            setValues({ ...values, [name]: value });
          }}
        />
      ))}
      {error !== null && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
      <div className="options">
        <button type="submit" className="allow">
          Answer
        </button>
        <button type="button" className="reject" onClick={() => respond({ action: 'decline' })}>
          Decline
        </button>
      </div>
    </form>
  );
}
