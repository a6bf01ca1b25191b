"""Real model files, read with NumPy: what the chapters call on when the small examples are done.

    glove.py        word vectors
    minilm.py       a sentence encoder
    smollm2.py      a language model that chats

    locate.py       where a model is: a folder or file, the cache of the Hugging Face hub, a data package
    gguf.py         the file format of llama.cpp, quantised
    gguf_model.py   the model and tokenizer in such a file
    safetensors.py  the file format of the Hugging Face hub
    huggingface/    its names for weights and settings, and ours
    wordpiece.py    BERT's tokenizer
"""
