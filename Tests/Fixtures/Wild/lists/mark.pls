[playlist]
NumberOfEntries=1
File1=https://one.example/radio.mp3
Title1=Radio
