interface Props {
  text: string;
  change(text: string): void;
}

export function Feedback({ text, change }: Props) {
  return (
    <label className="feedback">
      <span>Note to the agent (optional)</span>
      <textarea rows={2} value={text} onChange={(event) => change(event.target.value)} />
    </label>
  );
}
