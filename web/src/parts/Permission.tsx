import { model } from '../state/model';
import { useStore } from '../state/store';
import { LongText } from '../text/LongText';

interface Data {
  approved?: boolean;
  reason?: string;
  by?: string;
  client?: { name?: string };
  feedback?: string;
}

/** Decision on a permission request; while it is open, the dialog shows it. */
export function Permission({ id, data }: { id: string; data: Data }) {
  const answeredBy = useStore(model, ({ answeredBy }) => answeredBy[id]);
  if (data.approved === undefined) return <p className="decision open">Permission needed</p>;
  const name = data.client?.name ?? answeredBy;
  return (
    <p className={`decision ${data.approved ? 'approved' : 'refused'}`}>
      {data.approved ? 'Approved' : 'Refused'}
      {name !== undefined && ` by ${name}`}
      {data.reason !== undefined && <span className="why"> · <LongText text={data.reason} /></span>}
      {data.feedback !== undefined && <span className="why"> · “<LongText text={data.feedback} />”</span>}
    </p>
  );
}
