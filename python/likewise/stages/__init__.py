"""The stages of one document or pair: text, features, sketch, candidates, verification, groups; one module each."""
