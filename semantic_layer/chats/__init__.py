"""What of a chat its last message needs, and whether two chats agree in it."""
