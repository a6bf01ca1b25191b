"""Real model files, read with NumPy, in place of the small examples of the chapters.

glove.py        word vectors
minilm.py       a sentence encoder
smollm2.py      a language model that chats

hub.py          a model by its name: a folder or file, the cache of the Hugging Face hub, a data package
gguf.py         the file format of llama.cpp, with quantised weights
gguf_model.py   the model and the tokenizer in such a file
huggingface.py  a checkpoint of the Hugging Face hub, from and to a folder
names.py        its names of tensors and settings, beside ours: the tables of families.toml
settings.py     its config.json, and our `Config`
files.py        its files: JSON and safetensors
wordpiece.py    the tokenizer of BERT
"""
