// Mode, model and the other options that the agent offers.

import type { Choice, ConfigOption, OptionValue, SessionState } from '../rpc/types';
import { changeSetting } from '../state/client';
import { model } from '../state/model';
import { useStore } from '../state/store';

interface Setting {
  label: string;
  current: string;
  values: { id: string; name: string }[];
  change(value: string): void;
}

function values(option: ConfigOption): { id: string; name: string }[] {
  const flat: OptionValue[] = (option.options ?? []).flatMap((entry) => ('options' in entry ? entry.options : [entry]));
  return flat.map(({ value, name }) => ({ id: value, name: name ?? value }));
}

function choices(list: Choice[] | undefined): { id: string; name: string }[] {
  return (list ?? []).map(({ id, modelId, name }) => ({ id: id ?? modelId ?? '', name: name ?? id ?? modelId ?? '' }));
}

/** The agent has a list of modes or models, or an option for them, or both with the same value. */
function listed(state: SessionState, category: 'mode' | 'model'): Setting | null {
  const isMode = category === 'mode';
  const label = isMode ? 'Mode' : 'Model';
  const change = (value: string) =>
    void changeSetting(isMode ? 'session/setMode' : 'session/setModel', isMode ? { mode: value } : { model: value });
  const list = choices(isMode ? state.modes?.availableModes : state.models?.availableModels);
  if (list.length > 0) {
    const current = (isMode ? state.modes?.currentModeId : state.models?.currentModelId) ?? '';
    return { label, current, values: list, change };
  }
  const option = state.configOptions?.find((candidate) => candidate.category === category);
  return option ? { label, current: String(option.currentValue ?? ''), values: values(option), change } : null;
}

function Select({ label, current, values, change }: Setting) {
  return (
    <label className="setting">
      <span>{label}</span>
      <select value={current} onChange={(event) => change(event.target.value)}>
        {values.every(({ id }) => id !== current) && <option value={current}>{current}</option>}
        {values.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Option({ option }: { option: ConfigOption }) {
  const change = (value: string | boolean) => void changeSetting('session/setOption', { option: option.id, value });
  if (option.type !== 'boolean') {
    return <Select label={option.name} current={String(option.currentValue ?? '')} values={values(option)} change={change} />;
  }
  return (
    <label className="setting">
      <span>{option.name}</span>
      <input type="checkbox" checked={option.currentValue === true} onChange={(event) => change(event.target.checked)} />
    </label>
  );
}

export function Settings() {
  const state = useStore(model, ({ open }) => open?.state);
  const isObserver = useStore(model, ({ isObserver }) => isObserver);
  if (!state || isObserver) return null;
  const main = [listed(state, 'mode'), listed(state, 'model')].filter((setting) => setting !== null);
  const others = state.configOptions?.filter(({ category }) => category !== 'mode' && category !== 'model') ?? [];
  if (main.length === 0 && others.length === 0) return null;
  return (
    <>
      <div className="settings">
        {main.map((setting) => (
          <Select key={setting.label} {...setting} />
        ))}
      </div>
      {others.length > 0 && (
        <details className="options">
          <summary>Options</summary>
          <div className="menu">
            {others.map((option) => (
              <Option key={option.id} option={option} />
            ))}
          </div>
        </details>
      )}
    </>
  );
}
