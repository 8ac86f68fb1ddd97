import './noEval';
import { createRoot } from 'react-dom/client';
import './styles/index.css';
import { Page } from './layout/Page';

createRoot(document.getElementById('page')!).render(<Page />);
