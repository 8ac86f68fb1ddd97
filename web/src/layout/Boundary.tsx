import { Component, type ReactNode } from 'react';

interface Props {
  /** What is shown, for the user. */
  name: string;
  /** Data of the agent that is shown: another value is tried again. */
  value?: unknown;
  children: ReactNode;
}

interface State {
  hasFailed: boolean;
  value: unknown;
}

/** Contains a fault of a view: what has the fault is replaced by a note, and the rest of the page stays usable. */
export class Boundary extends Component<Props, State> {
  override state: State = { hasFailed: false, value: this.props.value };

  static getDerivedStateFromError(): Partial<State> {
    return { hasFailed: true };
  }

  static getDerivedStateFromProps({ value }: Props, state: State): State | null {
    return value === state.value ? null : { hasFailed: false, value };
  }

  override render(): ReactNode {
    return this.state.hasFailed ? <p className="hint">The {this.props.name} cannot be shown.</p> : this.props.children;
  }
}
